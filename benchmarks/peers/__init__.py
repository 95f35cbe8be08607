"""beat beside rq cron, rq-scheduler, RedBeat and Celery beat: run three, kill one, count what is lost and doubled."""
